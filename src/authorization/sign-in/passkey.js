// Passkeys are the only feature that needs a script. A form with `data-passkey` is shown if the browser supports passkeys; on
// submit, the script puts the browser's answer into the form's fields and sends the form like any other.
const encode = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
const decode = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
const decodeIds = (list = []) => list.map((item) => ({ ...item, id: decode(item.id) }));

async function fetchOptions(form) {
  const body = new URLSearchParams({ csrf_token: form.elements.csrf_token.value });
  const response = await fetch(form.dataset.options, { method: 'POST', body });
  // The form is too old, the session has ended, or there were too many requests: the page of the redirect shows which.
  if (response.redirected) {
    location.assign(response.url);
    return undefined;
  }
  if (!response.ok) throw new Error(`options: ${response.status}`);
  return response.json();
}

const ceremonies = {
  async get(options) {
    const publicKey = {
      ...options,
      challenge: decode(options.challenge),
      allowCredentials: decodeIds(options.allowCredentials),
    };
    const { id, rawId, type, response } = await navigator.credentials.get({ publicKey });
    return {
      id,
      rawId: encode(rawId),
      type,
      clientExtensionResults: {},
      response: {
        authenticatorData: encode(response.authenticatorData),
        clientDataJSON: encode(response.clientDataJSON),
        signature: encode(response.signature),
        userHandle: response.userHandle ? encode(response.userHandle) : undefined,
      },
    };
  },
  async create(options) {
    const publicKey = {
      ...options,
      challenge: decode(options.challenge),
      user: { ...options.user, id: decode(options.user.id) },
      excludeCredentials: decodeIds(options.excludeCredentials),
    };
    const { id, rawId, type, response } = await navigator.credentials.create({ publicKey });
    return {
      id,
      rawId: encode(rawId),
      type,
      clientExtensionResults: {},
      response: {
        attestationObject: encode(response.attestationObject),
        clientDataJSON: encode(response.clientDataJSON),
        transports: response.getTransports?.() ?? [],
      },
    };
  },
};

let isAsking = false;

async function submit(form) {
  // A second request would abort the browser's passkey dialog, or the navigation in progress.
  if (isAsking) return;
  isAsking = true;
  for (const note of form.querySelectorAll('[role="alert"]')) note.hidden = true;
  try {
    const asked = await fetchOptions(form);
    if (asked === undefined) return;
    const credential = await ceremonies[form.dataset.passkey](asked.options);
    form.elements.ticket.value = asked.ticket;
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    const known = error.name === 'InvalidStateError' && form.querySelector('[data-known]');
    (known || form.querySelector('[data-failure]')).hidden = false;
    isAsking = false;
  }
}

// A page from the back/forward cache still has its old state.
addEventListener('pageshow', (event) => {
  if (event.persisted) isAsking = false;
});

// Browsers support no passkeys for an IP address, even if the service also has a host name.
const isAddress = /^[\d.]+$|^\[/.test(location.hostname);
if (window.PublicKeyCredential && !isAddress) {
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.hidden = false;
    const parent = form.closest('[data-other-ways]');
    if (parent) parent.hidden = false;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void submit(form);
    });
  }
}
