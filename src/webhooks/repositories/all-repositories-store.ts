/** Lists repositories of all owners, for administrators. */
import { type Store, statement } from '../../database/store.ts';
import type { Repository } from './repository.ts';
import { COLUMNS, fromRow, type RepositoryRow } from './repository-store.ts';

const repositoriesAfterSql = statement<RepositoryRow>(
  'repositories-after',
  `SELECT ${COLUMNS} FROM repositories WHERE id > $1 AND ($2 = '' OR owner_id = $2) ORDER BY id LIMIT $3`,
);

export interface RepositoriesQuery {
  readonly afterId: number;
  /** Undefined: of all owners. */
  readonly ownerId: string | undefined;
  readonly limit: number;
}

/** Lists all repositories in the order of their ids. */
export async function listAllRepositories(
  store: Store,
  { afterId, ownerId, limit }: RepositoriesQuery,
): Promise<Repository[]> {
  return (await store.read(repositoriesAfterSql, [afterId, ownerId ?? '', limit])).map(fromRow);
}
