/** Renders a mail to one person as plain text and as simple HTML. */
import { html } from 'hono/html';

export interface Mail {
  readonly to: string;
  /** A tag of BCP 47; English unless given. */
  readonly language?: string;
  readonly subject: string;
  readonly paragraphs: readonly string[];
  /** The link that the reader should open, shown after the paragraphs. */
  readonly link?: MailLink | undefined;
  /** The sender, and why the reader gets the mail. */
  readonly footer: string;
}

export interface MailLink {
  readonly label: string;
  readonly url: string;
}

export interface RenderedMail {
  readonly text: string;
  readonly html: string;
}

export async function renderMail({ language = 'en', paragraphs, link, footer }: Mail): Promise<RenderedMail> {
  const linked = link === undefined ? [] : [`${link.label}:\n${link.url}`];
  const body = html`<!doctype html><html lang="${language}"><body style="font-family:sans-serif;line-height:1.5;max-width:36em">
${paragraphs.map((paragraph) => html`<p>${paragraph}</p>`)}
${link === undefined ? '' : html`<p>${link.label}:<br><a href="${link.url}">${link.url}</a></p>`}
<p style="color:#666;font-size:.9em">${footer}</p></body></html>`;
  // "-- " on a line of its own begins a signature (RFC 3676 §4.3).
  return { text: `${[...paragraphs, ...linked, `-- \n${footer}`].join('\n\n')}\n`, html: String(await body) };
}
