"""Who solves the task: prompts, parsing of completions, policies and the archive of earlier
solutions."""

from mle_rl.agent.archive import Archive, Solution
from mle_rl.agent.policy import Policy, load_policy, policy_names
from mle_rl.agent.prompts import Prompt, PromptSource, parse_completion, task_shape

__all__ = [
    "Archive",
    "Policy",
    "Prompt",
    "PromptSource",
    "Solution",
    "load_policy",
    "parse_completion",
    "policy_names",
    "task_shape",
]
