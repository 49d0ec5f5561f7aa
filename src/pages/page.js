/** Improves every page; all of them work without it. Its texts come with the page. */
const words = document.body.dataset;

function addButton(label, act) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'plain quiet';
  button.textContent = label;
  button.addEventListener('click', () => act(button));
  return button;
}

function copy(button, text) {
  void navigator.clipboard.writeText(text).then(() => {
    button.textContent = words.labelCopied;
    setTimeout(() => {
      button.textContent = words.labelCopy;
    }, 2000);
  });
}

/** Adds a button that shows the password while it is typed. */
function addPasswordButtons(root) {
  for (const input of root.querySelectorAll('input[type="password"]')) {
    const button = addButton(words.labelShow, () => {
      const isHidden = input.type === 'password';
      input.type = isHidden ? 'text' : 'password';
      button.textContent = isHidden ? words.labelHide : words.labelShow;
      button.setAttribute('aria-pressed', String(isHidden));
    });
    button.setAttribute('aria-controls', input.id);
    button.setAttribute('aria-pressed', 'false');
    // The field is not moved, since it would lose the focus.
    input.parentElement.classList.add('shown-password');
    input.after(button);
    // Password managers recognize it as a password.
    input.form?.addEventListener('submit', () => {
      input.type = 'password';
    });
  }
}

/** Adds a button to each `data-copy` that copies its text, and to each `data-download` one that saves it under this name. */
function addCopyButtons(root) {
  for (const block of root.querySelectorAll('[data-copy]')) {
    const row = document.createElement('p');
    row.className = 'row copy';
    const read = () => block.dataset.copy || block.innerText.trim();
    if (navigator.clipboard !== undefined) row.append(addButton(words.labelCopy, (button) => copy(button, read())));
    const name = block.dataset.download;
    if (name !== undefined) row.append(addButton(words.labelDownload, () => save(name, read())));
    block.after(row);
  }
}

function save(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/plain' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Replaces the parts of the page that have changed, except a part that has the focus or an open fold. */
function showParts(main, html) {
  const fresh = new DOMParser().parseFromString(html, 'text/html');
  for (const part of main.querySelectorAll('[data-part]')) {
    const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    const isBusy = part.contains(document.activeElement) || part.querySelector('details[open]') !== null;
    if (next === null || isBusy || next.innerHTML === part.dataset.shown) continue;
    part.dataset.shown = next.innerHTML;
    if (next.innerHTML !== part.innerHTML) part.replaceChildren(...next.childNodes);
  }
}

/** If the server refuses the stream, the page asks again with exponential backoff: browsers reconnect only after a connection breaks. */
const FIRST_WAIT_MS = 3000;
const LONGEST_WAIT_MS = 300_000;

/** Asks for the parts in the time zone in which the page was shown, since its labels stay and name that zone. */
function addressOf(main) {
  const address = new URL(location.href);
  address.searchParams.set('zone', main.dataset.zone);
  return address;
}

function follow(main) {
  let source;
  let timer;
  let waitMs = FIRST_WAIT_MS;
  const mark = main.querySelector('[data-live-mark]');
  const setMark = (isLive) => {
    if (mark !== null) mark.hidden = !isLive;
  };
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = undefined;
    setMark(false);
  };
  const start = () => {
    if (source !== undefined || document.hidden) return;
    source = new EventSource(addressOf(main));
    source.addEventListener('page', ({ data }) => {
      waitMs = FIRST_WAIT_MS;
      setMark(true);
      showParts(main, data);
    });
    source.addEventListener('end', stop);
    source.addEventListener('error', () => {
      setMark(false);
      if (source?.readyState === EventSource.CLOSED) startLater();
    });
  };
  const startLater = () => {
    stop();
    timer = setTimeout(start, waitMs);
    waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
  };
  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : start()));
  addEventListener('pagehide', stop);
  start();
}

/** A form may be sent again if no page has loaded after this time: the reader may have stopped the loading. */
const SEND_AGAIN_AFTER_MS = 30_000;

/**
 * Ignores a second click on the same button until the first is answered: the form could act twice, or be refused the second time.
 * Other buttons and forms, such as signing out, do not wait for it.
 */
function sendOnce() {
  const sentAtMs = new Map();
  // Runs after the listeners of forms that send something else first.
  addEventListener('submit', (event) => {
    if (event.defaultPrevented || event.target.method !== 'post') return;
    const sender = nameSender(event);
    const lastMs = sentAtMs.get(sender) ?? Number.NEGATIVE_INFINITY;
    if (event.timeStamp - lastMs < SEND_AGAIN_AFTER_MS) event.preventDefault();
    else sentAtMs.set(sender, event.timeStamp);
  });
  const reset = () => sentAtMs.clear();
  // The back/forward cache restores a page as it was left.
  addEventListener('pageshow', reset);
  // A form that opens an application outside of the browser loads no other page; its reader comes back to this one.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) reset();
  });
}

/** Identifies a button by what it sends, without what is typed: a live page may replace the button with an equal one. */
function nameSender({ target, submitter }) {
  const hidden = [...target.querySelectorAll('input[type="hidden"]')].map(({ name, value }) => [name, value]);
  return JSON.stringify([target.getAttribute('action'), hidden, submitter?.name, submitter?.value]);
}

/** Stores the time zone of the browser in a cookie, so that the next page shows its times in that zone. */
function keepTimeZone() {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API needs https, which a service in a lab may lack.
  if (timeZone) document.cookie = `trivet_time_zone=${timeZone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
}

keepTimeZone();
sendOnce();
addPasswordButtons(document);
addCopyButtons(document);
for (const main of document.querySelectorAll('main[data-live]')) follow(main);
