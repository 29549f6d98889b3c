import { isTimed } from '../../../../src/worker/http/exchange.js';
import { knownResponses, methodLabel, routeLabels } from '../../../../src/worker/http/known-responses.js';
import { families } from '../../../support/families.js';

function keyOf(labels: object): string {
  const { method, route, code } = labels as Readonly<Record<string, string | number>>;
  return `${method} ${route} ${code}`;
}

function keysOf(responses: readonly object[] | null | undefined): string[] {
  return (responses ?? []).map(keyOf).toSorted();
}

describe('The known responses', () => {
  it('are those of the contract, each once', () => {
    expect(keysOf(knownResponses)).toEqual(keysOf(families.http_requests_total?.labelSets));
  });

  it('are timed where an endpoint gives them', () => {
    expect(keysOf(knownResponses.filter(isTimed))).toEqual(keysOf(families.http_request_duration_seconds?.labelSets));
  });

  it('have the route `other` where no endpoint takes the path', () => {
    expect(new Set(knownResponses.map(({ route }) => route))).toEqual(new Set(routeLabels));
    expect(isTimed({ route: 'other', code: 200 })).toBe(false);
    expect(isTimed({ route: '/ask', code: 405 })).toBe(false);
  });

  it('have the method `other` for any that is not well known', () => {
    expect(['GET', 'HEAD', 'OPTIONS', 'get', 'BREW', ''].map(methodLabel)).toEqual([
      'GET',
      'HEAD',
      'OPTIONS',
      'other',
      'other',
      'other',
    ]);
  });
});
