import type { Service, ServiceOptions } from '../../service/service.js';

/** Behaviour of a service's model CLI; `missing`: no program exists. */
export type Model = 'answers' | 'fails' | 'stalls' | 'missing';

/** Starts a service with such a model CLI; with two workers if the CLI answers. */
export type Start = (model: Model, options: ServiceOptions) => Promise<Service>;

/** Starts a service like `Start`, with the options that all services of a suite share. */
export type Open = (model: Model, env?: Readonly<Record<string, string>>) => Promise<Service>;

export const keys = { alice: { 'x-api-key': 'key-of-alice' }, bob: { authorization: 'Bearer key-of-bob' } } as const;
export const oneKey = { MODEL_API_KEY: keys.alice['x-api-key'] } as const;

/** Returns the same running service to every test that calls it. */
export type Running = () => Promise<Service>;
