/** The labels of a form's fields, by the names that the API has for them. */
export type Labels = Readonly<Record<string, string>>;

/** A refusal with the label of its field: the API says `url must not be blank`, the page “Address” must not be blank. */
export function nameByLabel(message: string, labels: Labels): string {
  const [, action = '', name = '', rest = ''] = /^(Cannot [^:"]*: )?([\w.]+) (.*)$/s.exec(message) ?? [];
  if (!Object.hasOwn(labels, name)) return message;
  // Chinese has no space beside its marks.
  const space = /^\p{Script=Han}/u.test(rest) ? '' : ' ';
  return `${action}“${labels[name]}”${space}${rest}`;
}
