/** Lists the English texts of notices. */
export const noticeTexts = {
  /** The language of the mail, for its HTML. */
  language: 'en',
  hello: (name: string) => `Hello ${name},`,
  footer: (service: string) =>
    `Trivet, ${service}. You get at most one mail of each kind an hour about the same thing. Switch these mails off on your profile page.`,
  hook: {
    open: 'Open the webhook',
    failing: (place: string, url: string) => ({
      subject: `A webhook of ${place} fails`,
      paragraphs: [
        `deliveries of a webhook of ${place} to ${url} have failed for more than five minutes.`,
        'They are tried again. A webhook that goes on failing is disabled.',
      ],
    }),
    disabled: (place: string, url: string, reason: string) => ({
      subject: `A webhook of ${place} is disabled`,
      paragraphs: [
        `the webhook of ${place} to ${url} was disabled: ${reason}.`,
        'Events are held for 7 days. Enable it once the receiver works, and what was held is sent.',
      ],
    }),
    fine: (place: string, url: string) => ({
      subject: `A webhook of ${place} works again`,
      paragraphs: [`deliveries of a webhook of ${place} to ${url} are accepted again.`],
    }),
  },
  model: {
    open: 'Open the model',
    drift: (model: string) => ({
      subject: `The model ${model} drifts`,
      paragraphs: [
        `observed times of ${model} no longer fit what its served version predicts.`,
        'A new version is learned from the newest observations; the page shows the errors over time.',
      ],
    }),
    fine: (model: string) => ({
      subject: `The model ${model} had no drift alarm for an hour`,
      paragraphs: [
        `no drift alarm was raised for ${model} in the last hour.`,
        'The page shows its errors since then, and which version is served now.',
      ],
    }),
  },
  disk: {
    full: (host: string, folder: string, freeMib: number) => ({
      subject: `The disk of ${host} is nearly full`,
      paragraphs: [
        `${freeMib} MiB are left for "${folder}" on ${host}.`,
        'Make room, or move the folder: without room nothing is stored.',
      ],
    }),
    fine: (host: string, folder: string, freeMib: number) => ({
      subject: `The disk of ${host} has room again`,
      paragraphs: [`${freeMib} MiB are free for "${folder}" on ${host}.`],
    }),
  },
} as const;
