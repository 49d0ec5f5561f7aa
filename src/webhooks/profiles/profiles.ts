/** Chooses the format in which an event is delivered: GitCode, Gitee, GitHub or GitLab (no format for chat systems or message queues). */
import type { Hook, ProfileName } from '../hooks/hook.ts';
import { gitcode } from './gitcode.ts';
import { gitee } from './gitee.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import type { Attempt, PreparedRequest, Profile } from './profile.ts';

export const PROFILES: Readonly<Record<ProfileName, Profile>> = { gitcode, gitee, github, gitlab };

/** Whether deliveries of such a hook have its password in plain text in a header. */
export function sendsPassword({ profile, encryptionType }: Pick<Hook, 'profile' | 'encryptionType'>): boolean {
  return encryptionType === 0 && PROFILES[profile].sendsPassword;
}

/** Builds the headers and the body of one attempt in the format of the profile. */
export function prepareRequest(name: ProfileName, attempt: Attempt): PreparedRequest {
  const profile = PROFILES[name];
  const body = profile.complete?.(attempt) ?? attempt.body;
  return { headers: profile.headers({ ...attempt, body }), body };
}
