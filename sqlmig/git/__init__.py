"""Git as sqlmig asks it: the checkout's state, the files of a commit, who wrote which revision."""

from sqlmig.git.state import GitState, read_git_state, without_credentials

__all__ = ["GitState", "read_git_state", "without_credentials"]
