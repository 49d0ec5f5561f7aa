/** Lists the English texts of the pages about repositories. */
import { formatCount, plural } from '../../language/plural.ts';

export const repositoryTexts = {
  title: 'Webhooks',
  lead: 'Your repositories and those of organizations you own, with their webhooks.',
  none: 'No repositories yet. A repository stands for one on your code host and owns the webhooks for it.',
  noneOfOwner: 'No repositories yet.',
  private: 'private',
  hooks: (count: number) => (count === 0 ? 'no webhooks' : plural(count, 'webhook', 'webhooks')),
  failing: (count: number) => `${count} failing`,
  disabled: (count: number) => `${count} disabled`,
  switchedOff: (count: number) => `${count} switched off`,
  all: (count: number) => `All ${formatCount(count)}`,
  page: (page: number, pages: number) => `Page ${page} of ${pages}`,
  next: 'Next',
  previous: 'Previous',
  create: 'New repository',
  owner: 'Owner',
  name: 'Name',
  nameHint: 'Letters, digits, dots, dashes and underscores; best the name that it has on your code host.',
  description: 'Description',
  descriptionHint: 'Optional.',
  isPrivate: 'Private',
  isPrivateHint: 'Other people cannot see that it exists.',
  submit: 'Create repository',
  created: 'The repository is created.',
} as const;
