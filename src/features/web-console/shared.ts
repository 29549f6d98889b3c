import { z } from 'zod';
import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { oneOf } from '../../shared/config/values.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';

/** What both processes know of the web console. */

export const variables = {
  MODEL_API_CONSOLE: {
    ...{ schema: oneOf(['on', 'off']), fallback: 'on', secrecy: 'none' },
    meaning: '`off`: no web console',
  },
} as const satisfies FeatureVariables;

export const calls = {
  /** Returns whether the console is served. */
  hasConsole: { request: z.object({}), answer: z.object({ hasConsole: z.boolean() }) },
};

export const endpoints = [
  {
    ...{ method: 'GET', route: '/console/', errors: [], isOpen: true, id: 'getConsole' },
    summary: 'The web console',
    description:
      'This path and `GET /` redirect to /console/. 404 with `MODEL_API_CONSOLE=off`. The files of the page have addresses that change with their content, so browsers can store them.',
    others: { 302: 'Redirect to /console/.' },
    ...{ answer: 'text/html', answerText: 'A page that uses this API.' },
  },
] as const satisfies readonly FeatureEndpoint[];
