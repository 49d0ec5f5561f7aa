/** Chooses how a delivery is written, by the platform that its receiver expects. */
import type { Hook, ProfileName } from '../hooks/hook.ts';
import { gitcode } from './gitcode.ts';
import { gitee } from './gitee.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import type { Attempt, PreparedRequest, Profile } from './profile.ts';

export const PROFILES: Readonly<Record<ProfileName, Profile>> = { gitcode, gitee, github, gitlab };

/** Whether a header of the deliveries of such a hook holds its password as it is. */
export function sendsPassword({ profile, encryptionType }: Pick<Hook, 'profile' | 'encryptionType'>): boolean {
  return encryptionType === 0 && PROFILES[profile].sendsPassword;
}

/** Headers and bytes of one attempt, in the words of the hook's platform. */
export function prepareRequest(name: ProfileName, attempt: Attempt): PreparedRequest {
  const profile = PROFILES[name];
  const body = profile.complete?.(attempt) ?? attempt.body;
  return { headers: profile.headers({ ...attempt, body }), body };
}
