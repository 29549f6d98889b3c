import { z } from 'zod';

export const versionBody = z
  .strictObject({
    name: z.literal('prompt-relay'),
    version: z.string(),
    commit: z.string().nullable(),
    node: z.string(),
    model_cli: z.strictObject({ adapter: z.string(), version: z.string().nullable() }),
    model_clis: z
      .array(z.strictObject({ cli: z.string(), adapter: z.string(), version: z.string().nullable() }))
      .meta({ description: 'All model CLIs if several are configured; `model_cli` is the first.' })
      .optional(),
    termination: z.enum(['cgroup', 'process-group']).meta({
      description: 'Method by which the service finds and ends the processes of the model CLI.',
    }),
    uptime_seconds: z.number().nonnegative(),
  })
  .meta({ id: 'Version' });
export type VersionBody = z.infer<typeof versionBody>;
