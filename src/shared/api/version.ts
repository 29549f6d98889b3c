import { z } from 'zod';

export const versionBody = z
  .strictObject({
    name: z.literal('prompt-relay'),
    version: z.string(),
    commit: z.string().nullable(),
    node: z.string(),
    model_cli: z.strictObject({ adapter: z.string(), version: z.string().nullable() }),
    uptime_seconds: z.number().nonnegative(),
  })
  .meta({ id: 'Version' });
export type VersionBody = z.infer<typeof versionBody>;
