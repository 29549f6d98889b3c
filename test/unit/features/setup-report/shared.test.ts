import { endpointsWith } from '../../../../src/features/setup-report/shared.js';
import { setupReport } from '../../../support/agents/setup-report.js';

it('The set-up report has the URL of each port of a feature, and no other', () => {
  const port = { name: 'added', variable: 'MODEL_API_ADDED_PORT', clients: 'others', urlText: 'Its address.' };
  const { ollama_url: _, ...report } = setupReport;
  const isReport = (body: object, ...ports: readonly (typeof port)[]) => {
    const [endpoint] = endpointsWith({ body: {}, view: {} }, ports);
    return typeof endpoint?.answer === 'object' && endpoint.answer.safeParse(body).success;
  };
  expect([isReport(report), isReport({ ...report, added_url: null })]).toEqual([true, false]);
  for (const url of [null, 'http://127.0.0.1:5053']) expect(isReport({ ...report, added_url: url }, port)).toBe(true);
  expect([isReport(report, port), isReport({ ...report, added_url: 5053 }, port)]).toEqual([false, false]);
});
