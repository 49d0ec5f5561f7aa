/** Lists the English messages of sign-in, second step, set-up, consent and devices. */
import { plural } from '../../language/plural.ts';

export const signInMessages = {
  signIn: {
    title: 'Sign in',
    asks: (application: string) => `The application “${application}” asks you to sign in.`,
    login: 'Login',
    password: 'Password',
    submit: 'Sign in',
    or: 'or',
    passkey: 'Sign in with a passkey',
    passkeyFailed: 'The passkey was not accepted. Try again, or use your password.',
    upstream: (name: string) => `Sign in with ${name}`,
    upstreamUnknown: (name: string) =>
      `This ${name} account is not linked to an account here. Sign in another way, and link it under “Password and sign-in”.`,
    upstreamNotFresh: (name: string) =>
      `${name} let you in without asking you to sign in again. Sign out there and try again, or sign in another way.`,
    upstreamTaken: (name: string) => `This ${name} account is linked already.`,
    upstreamFailed: 'The other provider did not let you in. Try again, or use your password.',
    missing: {
      accounts:
        'No account exists yet. Create the first one with the link in the output of the service (restart it for a new link), or with “trivet user create --admin --password-stdin” on its machine.',
      administrators:
        'No administrator exists yet. Create the first one with the link in the output of the service (restart it for a new link), or make a person an administrator with “trivet user admin LOGIN” on its machine.',
    },
    wrong: 'Wrong login or password.',
    current: (login: string) => `You are signed in as ${login}.`,
    goOn: 'Continue',
    again: 'This change needs a sign-in within the last half hour. Sign in again.',
    againForApplication: (login: string) =>
      `You are signed in as ${login}. To go on, sign in again, or as another person.`,
    againAsSame: (login: string) => `You are signed in as ${login}. To go on, sign in again.`,
    expectsAnother: (login: string) =>
      `You are signed in as ${login}. The application expects another account: sign in to that one.`,
    busy: (seconds: number) =>
      `Too many people are signing in right now. Try again in ${plural(seconds, 'second', 'seconds')}.`,
    wait: (seconds: number) =>
      `Too many attempts. Try again in ${seconds < 90 ? plural(seconds, 'second', 'seconds') : plural(Math.ceil(seconds / 60), 'minute', 'minutes')}.`,
    ended: 'You have signed out.',
    sessionEnded: 'Your session had ended, so what you sent was not saved. Sign in, and send it again.',
    passwordChanged: 'Your password was changed.',
    passwordChosen: 'Your password is set. Sign in with it.',
  },
  secondStep: {
    title: 'Second step',
    lead: 'Enter the six digits that your authenticator app shows, or one of your recovery codes.',
    code: 'Code',
    submit: 'Confirm',
    wrong: 'This code is wrong, or was used already. An authenticator app shows new digits every 30 seconds.',
    tooLate: 'The sign-in took too long. Please start again.',
  },
  setup: {
    title: 'Set up Trivet',
    lead: 'No administrator exists yet. Create the first one: this account administers the service.',
    login: 'Login',
    loginHint: 'Letters, digits, “.”, “_” and “-”. It becomes the first part of your repositories’ paths.',
    name: 'Name',
    email: 'Email address',
    optional: 'optional',
    password: 'Password',
    passwordHint: 'At least 10 characters. A few words in a row are easy to remember and hard to guess.',
    submit: 'Create the account',
    worthless:
      'This set-up link was used, has expired, or an administrator exists already. If you have an account, sign in; trivet user password-link makes a link to choose its password. If there is no administrator yet, restart the service for a new link.',
  },
  consent: {
    title: (name: string) => `Allow ${name}?`,
    by: (owner: string) => `by ${owner}`,
    byService: 'part of this service',
    asks: 'requests access to your account',
    may: 'It will be able to',
    leaveOut: 'Clear a box to withhold that access. The application may then not work fully.',
    usedBy: (people: number, many: number) => {
      if (people === 0) return 'not used by anyone here yet';
      if (people > many) return `used by more than ${many} people here`;
      return people === 1 ? 'used by one person here' : `used by ${plural(people, 'person', 'people')} here`;
    },
    powers: { read: 'read', write: 'read and change', danger: 'read and change · sensitive' },
    isNew: 'new',
    mayAlsoPredict:
      'It cannot see your password. Beside what is listed here, it can ask for predictions and report observations, and nothing else.',
    mayNot: 'It cannot see your password, and cannot do anything that is not listed here.',
    lasts: (lifetime: string) => `Access lasts ${lifetime} at a time and can be renewed by the application`,
    takeBack: 'You can revoke it at any time under “Authorized applications”.',
    leadsTo: 'You will be sent to',
    punycode: 'This name uses letters that can look like others. Make sure that you know the site.',
    loopback: 'a program on this computer',
    registered: (date: string) => `Registered ${date}`,
    publicClient: 'Runs on your device or in your browser',
    allow: 'Allow',
    deny: 'Deny',
    another: 'Use another account',
    answered: {
      title: 'The application has its answer',
      lead: 'This page led back to the application once. Continue there; if it asks again, start again there.',
    },
  },
  device: {
    title: 'Connect a device',
    lead: 'Enter the code that your device shows.',
    code: 'Code on the device',
    submit: 'Continue',
    check: 'Allow only if you started this yourself, on a device in front of you.',
    approved: 'Your device is connected',
    approvedLead: 'You can close this page and continue there.',
    denied: 'The device was not connected',
    deniedLead: 'Nothing was allowed. You can close this page.',
  },
} as const;
