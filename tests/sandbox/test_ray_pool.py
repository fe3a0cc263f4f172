"""The pool over Ray, on a cluster of two node processes of which one is killed."""

from __future__ import annotations

import pytest

from mle_rl import MleRlError
from mle_rl.records import Limits
from mle_rl.sandbox import Job, ray_pool


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
def test_a_fault_comes_back_from_the_node(world, cluster, tmp_path):
    (tmp_path / "public").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    with ray_pool.RayPool(1) as pool:
        with pytest.raises(MleRlError, match="does not exist"):
            pool.submit(Job("pass", tmp_path / "missing"))
        assert pool.run(Job("1 / 0", tmp_path / "public")).status == "error"
