/** Lists the English texts of the frame of every page. Each area has the texts of its own pages. */
export const frameTexts = {
  languages: 'Language',
  product: 'Trivet',
  footer: 'Trivet signs you in and asks you before an application may act for you.',
  skipToContent: 'Skip to content',
  navigation: 'Console',
  menu: 'Menu',
  script: { copy: 'Copy', copied: 'Copied', download: 'Download', show: 'Show', hide: 'Hide' },
  start: 'Home',
  signedInAs: 'Signed in as',
  signOut: 'Sign out',
  cancel: 'Cancel',
  back: 'Back',
  save: 'Save',
  remove: 'Remove',
  confirm: (label: string) => `Yes, ${label.charAt(0).toLowerCase()}${label.slice(1)}`,
  searchAndFilter: 'Search and filter',
  unknown: 'Unknown',
  mistakes: 'Please correct this',
  changedMeanwhile:
    'What you changed was changed elsewhere meanwhile. The form shows it as it is now: make your change again and save it.',
  /** The punctuation between parts of a sentence that code puts together. */
  marks: { comma: ', ', list: ', ', stop: '. ', colon: ': ' },
  /** Translates an English error message. */
  explain: (message: string) => message,
  goOn: {
    title: 'Redirecting',
    lead: (target: string) => `You are being redirected to ${target}.`,
    link: 'Continue now',
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
    trace: 'For support, quote this trace id:',
    home: 'Back to the start page',
    otherSite: 'This form was sent from another site.',
    fromOtherSite: {
      invalid:
        'The request that another site sent here is not valid: it is too long, or cannot be read. The application that sent you here has to be changed.',
      tooLarge: 'The request that another site sent here is too large.',
      tooMany: 'Too many requests. Try again later.',
      busy: 'The service is busy. Try again in a few seconds.',
      failed: 'The service failed. Try again, or tell its administrator when this happened.',
    },
    refusalGone: 'The error of this form can no longer be shown. Go back to the form and send it again.',
  },
} as const;
