import { z } from 'zod';
import { accessErrors } from '../../shared/api/endpoints.js';
import { setupFields } from '../../shared/api/setup.js';
import type { FeaturePort } from '../../shared/config/feature-variables.js';
import { type FeatureEndpoint, type KeyFields, withFields } from '../../shared/features/feature.js';

/** Returns the body of GET /setup, as JSON. */
export const calls = { setup: { request: z.object({}), answer: z.object({ text: z.string() }) } };

/** Returns the endpoints, with the addresses of these ports of features in the report. */
export function endpointsWith(_fields: KeyFields, ports: readonly FeaturePort[]): readonly FeatureEndpoint[] {
  const url = (text: string) => z.string().nullable().meta({ description: text });
  const urls = Object.fromEntries(ports.map(({ name, urlText }) => [`${name}_url`, url(urlText)]));
  return [
    {
      ...{ method: 'GET', route: '/setup', errors: accessErrors, id: 'getSetup' },
      summary: 'The configuration of the running service',
      description:
        'The output of `prompt-relay check` for the running service. Needs the scope `admin` if API keys are configured.',
      answer: withFields(setupFields, urls).readonly().meta({ id: 'SetupReport' }),
      answerText: 'The set-up.',
    },
  ];
}
