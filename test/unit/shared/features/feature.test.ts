import { askRequest } from '../../../../src/shared/api/ask.js';
import { primaryCallsWith, refusedFieldsOf, withFields } from '../../../../src/shared/features/feature.js';
import { setupReport } from '../../../support/agents/setup-report.js';

it('The set-up report has the URL of each port of a feature, and no other', () => {
  const port = { name: 'added', variable: 'MODEL_API_ADDED_PORT', clients: 'others', urlText: 'Its address.' };
  const { ollama_url: _, ...report } = setupReport;
  const isReport = (answer: object, ...ports: readonly (typeof port)[]) =>
    primaryCallsWith(ports.map((each) => ({ calls: {}, port: each }))).setup.answer.safeParse(answer).success;
  expect([isReport(report), isReport({ ...report, added_url: null })]).toEqual([true, false]);
  for (const url of [null, 'http://127.0.0.1:5053']) expect(isReport({ ...report, added_url: url }, port)).toBe(true);
  expect([isReport(report, port), isReport({ ...report, added_url: 5053 }, port)]).toEqual([false, false]);
});

describe('Tools in a request to the native API', () => {
  const refusalOf = (...toolRoutes: readonly `/${string}`[]) => {
    const body = { prompt: 'Hi', tools: [] };
    return withFields(askRequest, refusedFieldsOf([{ toolRoutes }])).safeParse(body).error?.issues[0]?.message;
  };

  it('are refused with the routes that accept them', () => {
    expect(refusalOf('/v1/a', '/b')).toBe('is only accepted by POST /v1/a, POST /b');
  });

  it('are an unknown field if no route accepts them', () => {
    expect(refusalOf()).toBe('Unrecognized key: "tools"');
  });
});
