import type { Service, ServiceOptions } from '../service.js';

/** What the model CLI of a service does with every prompt; `missing`: there is none. */
export type Model = 'answers' | 'fails' | 'stalls' | 'missing';

/** Starts a service of two workers or more with such a model CLI. */
export type Start = (model: Model, options: ServiceOptions) => Promise<Service>;

/** The same, with all that is shared by the services of one suite. */
export type Open = (model: Model, env?: Readonly<Record<string, string>>) => Promise<Service>;

export const keys = { alice: { 'x-api-key': 'key-of-alice' }, bob: { authorization: 'Bearer key-of-bob' } } as const;
export const oneKey = { MODEL_API_KEY: keys.alice['x-api-key'] } as const;
