import { z } from 'zod';

export const modelEntry = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    default: z.boolean(),
    description: z.string().optional(),
  })
  .meta({ id: 'Model' });
export type ModelEntry = z.infer<typeof modelEntry>;

export const modelsBody = z
  .strictObject({
    count: z.int().nonnegative(),
    models: z.array(modelEntry),
  })
  .meta({ id: 'Models' });
export type ModelsBody = z.infer<typeof modelsBody>;
