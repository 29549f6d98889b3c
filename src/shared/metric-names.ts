/** Every metric of the service begins with this. */
export const metricPrefix = 'model_api_';

/** Route templates: the only values a `route` label has. What matches none is `other`. */
export const routes = [
  '/ask',
  '/chat',
  '/chat/{id}',
  '/health',
  '/health/history',
  '/health/recheck',
  '/metrics',
  '/version',
  '/models',
  '/openapi.yaml',
  '/docs',
  'other',
] as const;
export type Route = (typeof routes)[number];
