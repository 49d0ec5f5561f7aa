/** Defines a repository that owns hooks, and its full name. It lives on some code host; this service stands beside it. */
export interface Repository {
  readonly id: number;
  readonly ownerKind: 'user' | 'organization';
  readonly ownerId: string;
  readonly ownerLogin: string;
  /** Shown to people; `path` is what addresses it. */
  readonly name: string;
  readonly path: string;
  readonly description: string;
  readonly isPrivate: boolean;
  readonly defaultBranch: string;
  /** Where people see it, and where git fetches it. */
  readonly webUrl: string;
  readonly httpUrl: string;
  readonly sshUrl: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export function fullNameOf(repository: Pick<Repository, 'ownerLogin' | 'path'>): string {
  return `${repository.ownerLogin}/${repository.path}`;
}

/** `name`: OWNER/NAME, in any case. */
export function isFullNameOf(repository: Pick<Repository, 'ownerLogin' | 'path'>, name: string | undefined): boolean {
  return fullNameOf(repository).toLowerCase() === name?.toLowerCase();
}
