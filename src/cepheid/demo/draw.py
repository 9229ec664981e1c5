"""Draws a chain of late flights as an HTML page and as an image."""

from __future__ import annotations

from cepheid.demo.timeline import Chain
from cepheid.demo.timeline_html import html_page


def draw_chain(chain: Chain) -> tuple[str, bytes]:
    """The text of a self-contained HTML page, and a PNG.

    Raises:
        ModuleNotFoundError: matplotlib, part of the extra `demo`, is not installed.
    """
    from cepheid.demo.timeline_png import png_image

    return html_page(chain), png_image(chain)
