import { SocketTable } from '../../worker/access/user-tables.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { LocalUsers } from './local-users.js';
import type { calls } from './shared.js';
import { UserNames } from './user-names.js';

export async function createPart({ primary, credentials }: WorkerCore<typeof calls>): Promise<WorkerPart> {
  const sources = { table: new SocketTable(), credentials, names: new UserNames() };
  return { routes: [], users: new LocalUsers(await primary.call('userSettings', {}), sources) };
}
