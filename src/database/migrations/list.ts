/** Lists every migration in the order in which they run; a new one goes to the end. */
import type { Migration } from '../store.ts';
import { database } from './0001-database.ts';
import { authorization } from './0020-authorization.ts';
import { credentialOrigins } from './0021-credential-origins.ts';
import { personalTokenParents, personalTokenRepositories } from './0022-personal-tokens.ts';
import { verifiedEmails } from './0023-verified-emails.ts';
import { accounts } from './0030-accounts.ts';
import { hooks } from './0040-hooks.ts';
import { deliveries } from './0050-deliveries.ts';
import { idStripes } from './0051-id-stripes.ts';
import { pauses } from './0054-pauses.ts';
import { eventsOfRepositories } from './0062-events-of-repositories.ts';
import { deliveryMinutes } from './0064-delivery-minutes.ts';
import { deliverySubjects } from './0066-delivery-subjects.ts';
import { deliveryProfiles } from './0068-delivery-profiles.ts';
import { hookQueueGenerations } from './0087-hook-queue-generations.ts';
import { troubledHooks } from './0090-troubled-hooks.ts';
import { mails } from './people/0080-mails.ts';
import { notices } from './people/0081-notices.ts';
import { languages } from './people/0082-languages.ts';
import { delegatedAccess } from './people/0083-delegated-access.ts';
import { publishedNotices } from './people/0084-published-notices.ts';
import { administratorSince } from './people/0085-administrator-since.ts';
import { noticeTimes } from './people/0086-notice-times.ts';
import { prediction } from './prediction/0010-prediction.ts';
import { llmD } from './prediction/0060-llm-d.ts';
import { waitingSpans } from './prediction/0061-waiting-spans.ts';
import { sampleTokens, serverHistories } from './prediction/0063-server-histories.ts';
import { driftAlarms } from './prediction/0065-drift-alarms.ts';
import { sharedLearning } from './prediction/0070-shared-learning.ts';
import { liveAccuracy } from './prediction/0071-live-accuracy.ts';
import { inputEffects } from './prediction/0073-input-effects.ts';
import { errorCounts } from './prediction/0074-error-counts.ts';
import { errorCountsOfModels } from './prediction/0075-error-counts-of-models.ts';
import { pendingOutputTokens } from './prediction/0076-pending-output-tokens.ts';
import { frequentReads } from './prediction/0089-frequent-reads.ts';
import { predictionByTime } from './prediction/0091-prediction-by-time.ts';

/**
 * Every migration, in the order in which they run. A number only names a migration; a new one goes to the end, because
 * it may change a table of any migration before it.
 */
export const migrations: readonly Migration[] = [
  database,
  prediction,
  authorization,
  accounts,
  hooks,
  deliveries,
  credentialOrigins,
  personalTokenParents,
  verifiedEmails,
  pauses,
  idStripes,
  waitingSpans,
  eventsOfRepositories,
  llmD,
  serverHistories,
  personalTokenRepositories,
  deliveryMinutes,
  driftAlarms,
  deliverySubjects,
  sampleTokens,
  sharedLearning,
  mails,
  liveAccuracy,
  notices,
  languages,
  inputEffects,
  errorCounts,
  delegatedAccess,
  errorCountsOfModels,
  publishedNotices,
  administratorSince,
  noticeTimes,
  deliveryProfiles,
  pendingOutputTokens,
  hookQueueGenerations,
  frequentReads,
  troubledHooks,
  predictionByTime,
];
