/** Renders the small parts of pages: form fields with label and error, buttons, lists, hints. */
import { html } from 'hono/html';
import { type Labels, nameByLabel } from './field-labels.ts';
import type { Html } from './layout.ts';
import { ZONE_FIELD } from './locale.ts';
import type { FrameTexts } from './texts.ts';

/** The error of a form, and the field that it is about. */
export interface Mistake {
  readonly message: string;
  readonly field?: string | undefined;
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly type?: 'text' | 'password' | 'email' | 'url' | 'datetime-local' | undefined;
  readonly value?: string | undefined;
  /** The most characters that the browser accepts; for a field that is read only after a step that cannot be undone. */
  readonly maxLength?: number | undefined;
  readonly autocomplete?: string | undefined;
  readonly inputMode?: 'numeric' | undefined;
  readonly className?: string | undefined;
  readonly isOptional?: boolean | undefined;
  readonly hasFocus?: boolean | undefined;
  readonly mistake?: Mistake | undefined;
}

/** Renders a one-line input with its label, hint and error. */
export function renderField(field: Field): Html {
  return renderAround(
    field,
    ({ id, isWrong, described }) =>
      html`<input id="${id}" name="${field.name}" type="${field.type ?? 'text'}" value="${field.value ?? ''}"${
        field.autocomplete ? html` autocomplete="${field.autocomplete}"` : ''
      }${field.maxLength ? html` maxlength="${field.maxLength}"` : ''}${field.inputMode ? html` inputmode="${field.inputMode}"` : ''}${
        field.className ? html` class="${field.className}"` : ''
      }${described}${field.isOptional ? '' : html` required`}${
        field.hasFocus && !isWrong ? html` autofocus` : ''
      } autocapitalize="none" spellcheck="false">`,
  );
}

export function renderTextArea(field: Field): Html {
  return renderAround(
    field,
    ({ id, described }) =>
      html`<textarea id="${id}" name="${field.name}"${described} autocapitalize="none" spellcheck="false">${field.value ?? ''}</textarea>`,
  );
}

interface Control {
  readonly id: string;
  readonly isWrong: boolean;
  /** The attributes that point to the hint and the error, and that mark and focus a field with an error. */
  readonly described: Html | string;
}

/** Renders the label and the hint before a control, and the error after it. */
function renderAround(
  { name, label, hint, mistake }: Pick<Field, 'name' | 'label' | 'hint' | 'mistake'>,
  renderControl: (control: Control) => Html,
): Html {
  const id = `field-${name}`;
  const isWrong = mistake?.field === name;
  const describedBy = [hint && `${id}-hint`, isWrong && `${id}-wrong`].filter(Boolean).join(' ');
  const described = html`${describedBy ? html` aria-describedby="${describedBy}"` : ''}${markWrong(name, mistake)}`;
  return html`<div>
<label for="${id}">${label}</label>
${hint ? html`<span class="hint" id="${id}-hint">${hint}</span>` : ''}
${renderControl({ id, isWrong, described })}
${renderWrong({ name, label, mistake })}
</div>`;
}

/** Renders the attributes of a control whose value was refused. */
export function markWrong(name: string, mistake: Mistake | undefined): Html | '' {
  return mistake?.field === name ? html` aria-invalid="true" autofocus` : '';
}

function renderWrong({ name, label, mistake }: Pick<Field, 'name' | 'label' | 'mistake'>): Html | '' {
  if (mistake?.field !== name) return '';
  return html`<p class="wrong" id="field-${name}-wrong">${nameByLabel(mistake.message, { [name]: label })}</p>`;
}

export interface Select {
  readonly name: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly choices: readonly { readonly value: string; readonly label: string }[];
  readonly value: string;
  readonly mistake?: Mistake | undefined;
}

export function renderSelect({ name, label, hint, choices, value, mistake }: Select): Html {
  return renderAround(
    { name, label, hint, mistake },
    ({ id, described }) =>
      html`<select id="${id}" name="${name}"${described}>${choices.map(
        (choice) =>
          html`<option value="${choice.value}"${choice.value === value ? html` selected` : ''}>${choice.label}</option>`,
      )}</select>`,
  );
}

export interface Choice {
  readonly name: string;
  readonly value: string;
  readonly label: string | Html;
  readonly hint?: string | undefined;
  readonly isChosen?: boolean | undefined;
  readonly mistake?: Mistake | undefined;
}

export function renderCheck(choice: Choice, type: 'checkbox' | 'radio' = 'checkbox'): Html {
  const { name, mistake } = choice;
  const label = typeof choice.label === 'string' ? choice.label : name;
  const described = mistake?.field === name ? html` aria-describedby="field-${name}-wrong"` : '';
  return html`<label class="check"><input type="${type}" name="${name}" value="${choice.value}"${
    choice.isChosen ? html` checked` : ''
  }${described}${markWrong(name, mistake)}><span>${choice.label}${choice.hint ? html` <span class="hint">${choice.hint}</span>` : ''}</span></label>${renderWrong({ name, label, mistake })}`;
}

/** Renders checkboxes that one error names together. The group gets the focus, since the error does not say which checkbox is wrong. */
export function renderGroup(
  { name, label, mistake }: Pick<Field, 'name' | 'label' | 'mistake'>,
  checks: Html | Html[],
): Html {
  const wrong = mistake?.field === name ? html` tabindex="-1" autofocus aria-describedby="field-${name}-wrong"` : '';
  return html`<fieldset${wrong}><legend>${label}</legend>${checks}${renderWrong({ name, label, mistake })}</fieldset>`;
}

/** Renders a form that filters a list: collapsed on a phone, where it would fill the first screen, unless a filter is set. */
export function renderFilterFold(texts: FrameTexts, form: Html, { isOpen }: { readonly isOpen: boolean }): Html {
  return html`<details class="fold"${isOpen ? html` open` : ''}><summary>${texts.searchAndFilter}</summary>${form}</details>`;
}

/**
 * Renders an error that a screen reader reads out at once. It comes first in the focus order, and has the focus unless a field below
 * has it. `labels`: of all fields beside which the page shows errors; `{}` for a page without such fields.
 */
export function renderMistake(texts: FrameTexts, mistake: Mistake | undefined, labels: Labels): Html | '' {
  if (mistake === undefined) return '';
  const isMarkedBelow = mistake.field !== undefined && Object.hasOwn(labels, mistake.field);
  return html`<div class="notice bad" role="alert" tabindex="-1"${isMarkedBelow ? '' : html` autofocus`}><strong>${texts.mistakes}${texts.marks.stop}</strong>${nameByLabel(mistake.message, labels)}</div>`;
}

export function renderDone(message: string | undefined): Html | '' {
  return message === undefined ? '' : html`<div class="notice" role="status">${message}</div>`;
}

export interface Question {
  /** The text of the button says what it does. */
  readonly label: string;
  /** The object that the button acts on: a screen reader reads the button without the page around it. */
  readonly subject?: string | undefined;
  /** The question, with the consequence of the answer. */
  readonly question: string;
  readonly action: string;
  readonly csrfToken: string;
  readonly fields?: Readonly<Record<string, string>> | undefined;
}

/** A button for an action that cannot be undone, or that others notice: it shows the question, and the button below the question acts. */
export function renderQuestion(texts: FrameTexts, { label, subject, question, ...form }: Question): Html {
  const hidden = subject === undefined ? '' : html`<span class="hidden"> ${subject}</span>`;
  return html`<details class="ask"><summary class="button danger quiet">${label}${hidden}</summary><div class="tight"><p>${question}</p>
<form method="post" action="${form.action}">${renderCsrf(form.csrfToken)}${renderHidden(form.fields ?? {})}<button class="danger">${texts.confirm(label)}${hidden}</button></form></div></details>`;
}

export function renderCsrf(token: string): Html {
  return html`<input type="hidden" name="csrf_token" value="${token}">`;
}

export function renderHidden(fields: Readonly<Record<string, string | undefined>>): Html[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

/** The hidden field of every form with a time: the server reads the time in the zone that the label of its field names. */
export function renderZone({ format }: FrameTexts): Html[] {
  return renderHidden({ [ZONE_FIELD]: format.timeZone });
}

/** Shows a time to the minute, with the time zone. */
export function renderMoment(texts: FrameTexts, ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${texts.format.minute(ms)} ${texts.format.zone(ms)}</time>`;
}

/** Shows a time to the second, where several events can share a minute. */
export function renderSecond(texts: FrameTexts, ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${texts.format.second(ms)} ${texts.format.zone(ms)}</time>`;
}

/** The initials of a name, shown in place of a picture. */
export function renderBadge(name: string): Html {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return html`<span class="who" aria-hidden="true">${first?.segment.toUpperCase() ?? '?'}</span>`;
}
