/** The route that a request matched, also one of a feature; else `other`. */
export type RouteLabel = `/${string}` | 'other';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** Of any other method `other`, so that a client cannot make a label. */
export function methodLabel(method: string): (typeof methods)[number] | 'other' {
  return methods.find((known) => known === method) ?? 'other';
}
