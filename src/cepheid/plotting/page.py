"""A picture as a page of HTML that loads nothing: Vega itself is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

from cepheid.plotting.theme import config_of, paper

VEGA_LITE = "6.4"
"""The version that vl-convert brings and Altair 6 writes for."""

_START = """
window.cepheidDraw = (element, spec, themes, fixed) => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const draw = () => {
    const theme = fixed || (dark.matches ? "dark" : "light");
    document.body.style.background = themes[theme].background;
    const actions = {export: true, source: false, compiled: false, editor: false};
    return vegaEmbed(element, spec, {config: themes[theme], actions, renderer: "svg", tooltip: {theme}, ast: true})
      .then(() => { document.body.dataset.drawn = theme; });
  };
  if (!fixed) dark.addEventListener("change", draw);
  return draw();
};
"""


def page_of(spec: Mapping[str, Any], title: str, theme: str | None) -> str:
    """The page. With no theme it follows that of the browser."""
    themes = {name: config_of(name) for name in ("light", "dark")}
    arguments = ", ".join(map(_in_script, (spec, themes, theme)))
    scheme = theme or "light dark"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{escape(title)}</title>
<style>:root {{ color-scheme: {scheme} }} body {{ margin: 0; background: {paper("light")} }} \
@media (prefers-color-scheme: dark) {{ body {{ background: {paper("dark")} }} }} \
#picture {{ overflow-x: auto }}</style>
</head>
<body>
<div id="picture"></div>
<script>{_vega()}</script>
<script>cepheidDraw("#picture", {arguments});</script>
</body>
</html>
"""


def _in_script(value: Any) -> str:
    """The value as JSON that can end neither its script nor a line of it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed, without anything that a page would load: 0.9 MB."""
    import vl_convert

    return str(vl_convert.javascript_bundle(_START, vl_version=VEGA_LITE))
