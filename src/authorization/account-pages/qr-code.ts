/** Renders a QR code as SVG, for the set-up of an authenticator app. */
import { html } from 'hono/html';
import qrcode from 'qrcode-generator';
import type { Html } from '../../pages/layout.ts';

/** Quiet zone of ISO/IEC 18004, in modules. */
const MARGIN = 4;

/** Renders `text` as one SVG path, dark on light in both colour schemes, since many phone cameras read no inverted codes. */
export function renderQrCode(text: string, label: string): Html {
  const code = qrcode(0, 'M');
  code.addData(text);
  code.make();
  const size = code.getModuleCount();
  let path = '';
  for (let row = 0; row < size; row += 1)
    for (let column = 0; column < size; column += 1)
      if (code.isDark(row, column)) path += `M${column + MARGIN} ${row + MARGIN}h1v1h-1z`;
  const edge = size + 2 * MARGIN;
  return html`<div class="qr"><svg viewBox="0 0 ${edge} ${edge}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${edge}v${edge}H0z"/><path fill="#000" d="${path}"/></svg></div>`;
}
