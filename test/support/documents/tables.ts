import { features } from '../../../src/features.js';
import { type Endpoint, endpoints, sharedEndpoints } from '../../../src/shared/api/endpoints.js';
import { variablesOf } from '../../../src/shared/config/feature-variables.js';
import { variables } from '../../../src/shared/config/variables.js';
import type { FeatureEndpoint } from '../../../src/shared/features/feature.js';
import { logEvents } from '../../../src/shared/log/logger.js';

/** Variables of the core and of features. */
export const allVariables: Readonly<Record<string, unknown>> = { ...variables, ...variablesOf(features) };

/** Events of the log and their meanings, first of the core and then of features. */
export const allLogEvents: Readonly<Record<string, string>> = Object.assign(
  {},
  logEvents,
  ...features.map((feature) => feature.logEvents),
);

type DescribedEndpoint = Pick<FeatureEndpoint, 'method' | 'errors'> & { readonly route: string };

/** Endpoints of the native API, first of the core and then of features. */
export const nativeEndpoints: readonly (DescribedEndpoint &
  Pick<Endpoint, 'success'> & { readonly others?: unknown })[] = [
  ...endpoints,
  ...features.flatMap((feature) => feature.endpoints),
];

/** Endpoints of the APIs of other programs, first those that they share and then those of each API. */
export const allDoorEndpoints: readonly DescribedEndpoint[] = [
  ...sharedEndpoints,
  ...endpointsInForm((formOf) => formOf === null),
  ...features.flatMap((feature) => {
    const own = feature.describeDoor?.().endpoints ?? [];
    return [...own, ...endpointsInForm((formOf) => own.some(({ route }) => route === formOf))];
  }),
];

/** Returns the endpoints of features that have the errors of an API of other features. */
function endpointsInForm(isWanted: (formOf: string | null) => boolean): DescribedEndpoint[] {
  const all = features.flatMap((feature) => feature.describeRoutes?.() ?? []);
  return all.filter(({ formOf }) => isWanted(formOf)).flatMap(({ endpoints: each }) => each);
}
