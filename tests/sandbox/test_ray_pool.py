"""The pool over Ray, on a cluster of two node processes of which one is killed.

Ray is an extra: ``make ray`` installs it and runs this file.
"""

from __future__ import annotations

import io

import pytest

from mle_rl import MleRlError
from mle_rl.records import Limits
from mle_rl.sandbox import Job, ray_pool, run_all


def test_without_ray_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr(ray_pool, "ray", None)
    with pytest.raises(MleRlError, match="pip install"):
        ray_pool.RayPool(1)


@pytest.fixture
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.slow
def test_a_lost_node_loses_no_job(world, cluster):
    nodes, second = cluster
    code = "import time; time.sleep(0.5); print({}); open('submission.csv', 'w').write('{}')"
    limits = Limits(timeout_s=120.0)
    with ray_pool.RayPool(2) as pool:
        assert pool.isolation.startswith("isolated: user, pid, net, mount")
        jobs = [Job(code.format(n, n), world.public, limits=limits) for n in range(16)]
        futures = [pool.submit(job) for job in jobs]
        assert futures[1].result().stdout == "1\n"
        nodes.remove_node(second, allow_graceful=False)
        executions = [future.result(timeout=300) for future in futures]
    assert [e.stdout for e in executions] == [f"{n}\n" for n in range(16)]
    assert [e.submission for e in executions] == [str(n).encode() for n in range(16)]


@pytest.mark.slow
def test_faults_and_progress_are_those_of_a_local_pool(world, cluster, tmp_path):
    limits = Limits(timeout_s=120.0)
    closed = tmp_path / "public"
    closed.mkdir()
    (closed / "train.csv").write_text("id\n")
    (closed / "train.csv").chmod(0)
    with ray_pool.RayPool(1) as pool:
        with pytest.raises(MleRlError, match="does not exist"):
            pool.submit(Job("pass", tmp_path / "missing"))
        with pytest.raises(MleRlError, match=r"^The sandbox could not set a program up.*chmod"):
            pool.run(Job("pass", closed, limits=limits))
        said = io.StringIO()
        jobs = [Job(code, world.public, limits=limits) for code in ("print(0)", "1 / 0")]
        first, second = run_all(pool, jobs, said)
        assert (first.stdout, second.status) == ("0\n", "error")
        assert "2 done, 0 running, 1 failed" in said.getvalue()
