"""What a key does, in words for a person and as the tables of the documentation."""

from __future__ import annotations

from relight.policy.opt_in import did_you_mean
from relight.settings.keys import KEYS, SECTIONS, Key, of_section

_NAMED_SECTIONS = ("cluster", "policy", "telemetry", "attribution")
_NAMED_PARTS = 2  # [policy.default] as a whole


def matching(asked: str) -> tuple[Key, ...]:
    """Return the keys that a person means, none when nothing fits.

    A key is meant by its whole path with any name in it (``policy.default.mode``), by its
    pattern (``policy.NAME.mode``), by a section (``policy``), or by its own name (``mode``).
    """
    parts = asked.replace("[]", "").strip().split(".")
    if len(parts) == 1:
        return tuple(key for key in KEYS if parts[0] in (key.section, key.leaf))
    section, leaf = parts[0].partition("[")[0], parts[-1]
    exact = tuple(key for key in KEYS if (key.section, key.leaf) == (section, leaf))
    if exact or section not in _NAMED_SECTIONS:
        return exact
    return tuple(of_section(section).values()) if len(parts) == _NAMED_PARTS else ()


def nearest(asked: str) -> str:
    """Return the key that a misspelt one is likeliest to mean, empty when none is near."""
    return did_you_mean(asked, [key.pattern for key in KEYS]) or did_you_mean(
        asked.rpartition(".")[2], [key.leaf for key in KEYS]
    )


def explain(key: Key) -> str:
    """Return all that is known of a key, as lines."""
    lines = [
        key.pattern,
        f"  {key.meaning}",
        f"  allowed:     {key.shape.allowed}",
        f"  default:     {key.default}",
        f"  why:         {key.precedent}",
    ]
    if key.variable:
        lines.append(f"  environment: {key.variable}")
    return "\n".join(lines)


def section_table(section: str) -> str:
    """Return the keys of a section as a Markdown table."""
    rows = ["| Key | Meaning | Allowed | Default | Why this default |", "|" + " --- |" * 5]
    for key in of_section(section).values():
        default = key.default if key.default.startswith(("none", "required", "$")) else ""
        cells = (
            f"`{key.pattern}`",
            key.meaning,
            key.shape.allowed,
            default or f"`{key.default}`",
            key.precedent,
        )
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows)


def markdown() -> str:
    """Return every section with its table, as they stand in the documentation."""
    return "\n\n".join(
        f"### {section}\n\n{sentence}\n\n{section_table(section)}"
        for section, sentence in SECTIONS.items()
    )
