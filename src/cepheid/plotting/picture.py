"""A picture, which notebooks show and which is written as HTML, PNG or SVG."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cepheid.errors import SchemaError
from cepheid.plotting.page import VEGA_LITE, page_of
from cepheid.plotting.theme import Theme, config_of

if TYPE_CHECKING:
    import altair as alt

KINDS = (".html", ".png", ".svg")
_FRAME = 'style="width: 100%; height: {height}px; border: 0" sandbox="allow-scripts allow-downloads"'


@dataclass(frozen=True, repr=False)
class Picture:
    """What `cepheid.plot` gives. A notebook shows it; `save` writes it."""

    title: str
    spec: Mapping[str, Any]
    """The picture in Vega-Lite, without colours: these come from the theme."""
    height: int
    """About how many pixels high it is."""

    @property
    def chart(self) -> alt.TopLevelMixin:
        """The picture as a chart of Altair, in the light theme, for changes of one's own."""
        import altair as alt

        chart: alt.TopLevelMixin = alt.Chart.from_dict(self.with_theme("light"))
        return chart

    def with_theme(self, theme: Theme) -> dict[str, Any]:
        """The picture in Vega-Lite with the colours of a theme.

        Raises:
            SchemaError: there is no such theme.
        """
        _check_theme(theme)
        return {**deepcopy(dict(self.spec)), "config": config_of(theme)}

    def html(self, theme: Theme | None = None) -> str:
        """A page that needs no network: zoom by the wheel, tooltips, a menu to save. Without a theme it follows that of
        the browser.
        """
        if theme is not None:
            _check_theme(theme)
        return page_of(self.spec, self.title, theme)

    def png(self, theme: Theme = "light") -> bytes:
        """An image with two pixels for each of the page."""
        import vl_convert

        spec = self.with_theme(theme)
        return bytes(vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2, allowed_base_urls=[]))

    def svg(self, theme: Theme = "light") -> str:
        """A vector image."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.with_theme(theme), vl_version=VEGA_LITE, allowed_base_urls=[]))

    def save(self, path: str | PathLike[str], theme: Theme | None = None) -> None:
        """Writes a file; its kind is that of the extension: .html, .png or .svg. Without a theme, pages follow the
        browser and images are light.

        Raises:
            SchemaError: the extension is another, there is no such theme, or no such folder.
        """
        file = Path(path)
        kind = check_kind(file)
        if not file.parent.is_dir():
            raise SchemaError(f"the picture {file.name!r} cannot be written: there is no folder {str(file.parent)!r}")
        match kind:
            case ".html":
                file.write_text(self.html(theme), "utf-8")
            case ".png":
                file.write_bytes(self.png(theme or "light"))
            case _:
                file.write_text(self.svg(theme or "light"), "utf-8")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """The page in a frame of its own, which needs nothing of the notebook, and no network."""
        frame = f'<iframe srcdoc="{escape(self.html())}" {_FRAME.format(height=self.height)}></iframe>'
        return {"text/plain": repr(self), "text/html": frame}

    def __repr__(self) -> str:
        return f"<Picture: {self.title}; save it as {', '.join(KINDS[:-1])} or {KINDS[-1]}>"


def check_kind(path: Path) -> str:
    """The extension; SchemaError if it is none of `KINDS`."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise SchemaError(f"a picture is written as {', '.join(KINDS)}; {path.name!r} is none of these")
    return kind


def _check_theme(theme: object) -> None:
    if theme not in get_args(Theme):
        raise SchemaError(f"theme: {theme!r} is none of {', '.join(map(repr, get_args(Theme)))}")
