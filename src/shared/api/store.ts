import { z } from 'zod';
import { clientText } from '../client.js';
import { storeKind } from './health.js';

const count = z.int().nonnegative();

/** Name of a file next to the store. Paths are not allowed. */
const backupName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be a file name of 1 to 128 letters, digits and . _ -, not a path');

export const backupRequest = z
  .strictObject({
    name: backupName.meta({
      description: 'Name of the new file in the folder of the store.',
    }),
  })
  .meta({ id: 'BackupRequest' });

export const storeBackup = z
  .strictObject({
    path: z.string(),
    bytes: count,
    duration_ms: count.meta({ description: 'Time that turns of conversations waited, in milliseconds.' }),
  })
  .meta({ id: 'StoreBackup' });
export type StoreBackup = z.infer<typeof storeBackup>;

const countsByTable = z.record(z.string(), count);

/** Empty object, so that fields can be added later. */
export const verifyRequest = z.strictObject({}).meta({ id: 'VerifyRequest' });

export const storeReport = z
  .strictObject({
    kind: storeKind,
    path: z.string().nullable().meta({ description: 'Path of the file; null for memory and Redis.' }),
    version: z.int().nullable(),
    bytes: count.meta({ description: 'Size of the file; 0 for memory and Redis.' }),
    faults: z.array(z.string()).meta({
      description: 'Faults: damage, files that other users can read, settings of Redis. Empty if there are none.',
    }),
    rows: countsByTable.meta({ description: 'Number of records, by table.' }),
    expired: countsByTable.meta({
      description: 'Expired records that are not yet deleted. The service deletes them automatically.',
    }),
    copies: z.array(z.string()).meta({ description: 'Copies of older states in other files.' }),
  })
  .meta({ id: 'StoreReport' });
export type StoreReport = z.infer<typeof storeReport>;

export const purgeRequest = z
  .strictObject({
    client: z
      .string()
      .regex(/^(key|made|user|sso|address) \S{1,256}$/, 'must be the kind and the name of a client, such as key alice')
      .meta({ description: 'Kind and name of the client, in the form that GET /usage shows.' })
      .pipe(clientText),
  })
  .meta({ id: 'PurgeRequest' });

export const purgeReport = z
  .strictObject({
    client: z.string(),
    removed: countsByTable.meta({ description: 'What was deleted from memory and from the store, by kind.' }),
    clients: z
      .array(z.string())
      .meta({ description: 'Clients whose data were deleted: the client, its keys and its sub-clients.' }),
    copies: z
      .array(z.string())
      .meta({ description: 'Files beside the store that may still contain its data: remove them yourself.' }),
  })
  .meta({ id: 'PurgeReport' });
export type PurgeReport = z.infer<typeof purgeReport>;
