"""Bars of red's ratios to the ceiling and to the best peer, as SVG that follows the reader's light or dark setting."""
from xml.sax.saxutils import escape

from cases import full_name

STYLE = ('text{font:12px sans-serif;fill:#222}.grid{stroke:#ccc}.bar{fill:#2a78c4}.peer{fill:#c46a2a}'
         '@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}')


def ratios(rows, kind='cold'):
    rows = [row for row in rows if kind in row]
    left, width, step = 430, 520, 18
    top, height = 40, 40 + step * len(rows) + 30
    scale = width / 2.0
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {height}" role="img">',
             f'<style>{STYLE}</style>',
             '<text x="10" y="18">ceiling / red (blue) and best peer / red (orange); above 1: red is faster</text>']
    for tick in (0, 0.5, 1, 1.5, 2):
        x = left + tick * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 10}" y2="{height - 20}"/>'
                     f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{tick}</text>')
    for index, row in enumerate(rows):
        y = top + index * step
        label = escape(f'{row["group"]} {full_name(row)}')
        parts.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{label}</text>')
        for offset, name, style in ((0, f'{kind}_ceiling_ratio', 'bar'), (7, f'{kind}_peer_ratio', 'peer')):
            if name in row:
                ratio = row[name]
                parts.append(f'<rect class="{style}" x="{left}" y="{y + offset}" width="{min(ratio, 2.2) * scale:.1f}" height="6">'
                             f'<title>{label}: {ratio:.2f}</title></rect>')
    return '\n'.join(parts + ['</svg>', ''])
