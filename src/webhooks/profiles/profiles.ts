/** Chooses how a delivery is written, by the platform that its receiver expects. */
import type { ProfileName } from '../hooks/hook.ts';
import { gitcode } from './gitcode.ts';
import { gitee } from './gitee.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import type { Attempt, PreparedRequest, Profile } from './profile.ts';

export const PROFILES: Readonly<Record<ProfileName, Profile>> = { gitcode, gitee, github, gitlab };

/** Headers and bytes of one attempt, in the words of the hook's platform. */
export function prepareRequest(name: ProfileName, attempt: Attempt): PreparedRequest {
  const profile = PROFILES[name];
  const body = profile.complete?.(attempt) ?? attempt.body;
  return { headers: profile.headers({ ...attempt, body }), body };
}
