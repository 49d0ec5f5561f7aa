/** What the frame of every page says; each area has the words of its own pages, in one place as here. */
export const frameTexts = {
  language: 'en',
  product: 'Trivet',
  footer: 'Trivet signs you in and asks you before anybody else may act for you.',
  skipToContent: 'Skip to content',
  navigation: 'Console',
  start: 'Home',
  signedInAs: 'Signed in as',
  signOut: 'Sign out',
  cancel: 'Cancel',
  back: 'Back',
  save: 'Save',
  remove: 'Remove',
  never: 'Never',
  unknown: 'Unknown',
  mistakes: 'Please look again',
  goOn: {
    title: 'Going on',
    lead: (target: string) => `You are being sent on to ${target}.`,
    link: 'Go on now',
  },
  leave: {
    title: 'Leave this service?',
    lead: (application: string, target: string) =>
      `The application "${application}" asked whether you are signed in here, and you are not. Go to ${target} only if you expected to.`,
    link: (target: string) => `Go to ${target}`,
  },
  error: {
    title: 'This did not work',
    notFound: 'There is no such page',
    trace: 'For support, name this trace:',
    home: 'To the start page',
  },
} as const;
