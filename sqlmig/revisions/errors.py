"""Several mistakes in the history at once. It knows nothing of graphs or files."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmig.errors import RevisionError


class UnknownRevision(RevisionError):
    """A name that is no revision and no branch label."""


class RevisionErrors(RevisionError):
    """All mistakes found in the revisions, sorted by place, so that one run shows them all."""

    def __init__(self, errors: Sequence[RevisionError]) -> None:
        self.errors = tuple(sorted(errors, key=str))
        super().__init__(f"{len(self.errors)} errors in the revisions")

    def render(self) -> str:
        return "\n\n".join(error.render() for error in self.errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def raise_all(errors: Sequence[RevisionError]) -> None:
    """Raise the one error, or all of them as one; do nothing when there is none.

    Raises:
        RevisionError: the only one in `errors`.
        RevisionErrors: when there are several.
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise RevisionErrors(errors)


def did_you_mean(name: str, known: Sequence[str]) -> str | None:
    """A hint that names the known word nearest to `name`, or None when none is near."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def listed(names: Sequence[str]) -> str:
    """Names for a message: "`a`", "`a` and `b`", "`a`, `b` and `c`"; in the order given."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
