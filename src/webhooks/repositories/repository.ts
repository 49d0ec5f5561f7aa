/** Defines a repository that owns hooks, and its full name. Its code is on some code host; this service only sends its events. */
export interface Repository {
  readonly id: number;
  readonly ownerKind: 'user' | 'organization';
  readonly ownerId: string;
  readonly ownerLogin: string;
  /** The name shown to people; `path` is part of its address. */
  readonly name: string;
  readonly path: string;
  readonly description: string;
  readonly isPrivate: boolean;
  readonly defaultBranch: string;
  /** The address of its page for people, and the addresses from which git fetches it. */
  readonly webUrl: string;
  readonly httpUrl: string;
  readonly sshUrl: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export function fullNameOf(repository: Pick<Repository, 'ownerLogin' | 'path'>): string {
  return `${repository.ownerLogin}/${repository.path}`;
}

/** Whether `name` (OWNER/NAME, in any case of letters) is this repository. */
export function isFullNameOf(repository: Pick<Repository, 'ownerLogin' | 'path'>, name: string | undefined): boolean {
  return fullNameOf(repository).toLowerCase() === name?.toLowerCase();
}
