/** Creates the data folder with safe permissions, and refuses network file systems. */
import { accessSync, constants, existsSync, mkdirSync, statfsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describeError, Failure } from '../../errors.ts';

/** statfs(2) magic numbers of file systems whose locks and flushes a database cannot rely on. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  1702057286: 'FUSE',
  12805120: 'Ceph',
  198183888: 'Lustre',
  1397113167: 'AFS',
  1937076805: 'Coda',
  16914839: '9P',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
  1196443219: 'GPFS',
  428016422: 'BeeGFS',
  2020557398: 'a folder shared with the host',
  3133910204: 'a folder shared with the host',
};

/** Creates a missing folder, readable by its owner only, and refuses a folder that is not on a local disk. */
export function ensureDataDir(dataDir: string): void {
  try {
    makeFolder(resolve(dataDir));
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new Failure(
      'invalid',
      `Cannot use the data folder "${dataDir}": ${describeError(error)}`,
      {},
      { cause: error },
    );
  }
  const network = findNetworkFileSystem(statfsSync(dataDir).type);
  if (network !== undefined)
    throw new Failure(
      'invalid',
      `Cannot use the data folder "${dataDir}": it must be on a local disk, and ${network} is not; use DATABASE_URL instead`,
    );
}

/** Creates parents first. Node's `recursive` is not used: it never returns where a parent accepts no folders, as in /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) {
    if (statSync(folder).isDirectory()) return;
    throw new Error(`"${folder}" is a file, not a folder`);
  }
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Returns the name of the network file system with this statfs type; undefined for a local one. */
export function findNetworkFileSystem(type: number): string | undefined {
  return NETWORK_FILE_SYSTEMS[type >>> 0];
}
