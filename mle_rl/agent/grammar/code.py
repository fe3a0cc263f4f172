"""A program under construction: lines, and the imports that they need."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Code:
    """Lines of a program and the names they import, kept apart until the program is written out."""

    lines: list[str] = field(default_factory=list)
    imports: dict[str, set[str]] = field(default_factory=dict)

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.lines.extend(lines)

    def use(self, module: str, name: str) -> str:
        """Import ``name`` from ``module`` and return it, for use inside an expression."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def import_lines(self, forgotten: bool = False) -> list[str]:
        """The import block. With ``forgotten`` the last ``from`` line is missing, as people do."""
        text = "\n".join(self.lines)
        plain = ["import numpy as np"] if "np." in text else []
        plain.append("import pandas as pd")
        named = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        return plain + (named[:-1] if forgotten else named)
