import { hourTotals, parseTotals, totalsChange } from '../../../src/command/base/totals.js';

const metrics = `# HELP model_api_http_requests_total Requests.
# TYPE model_api_http_requests_total counter
model_api_http_requests_total{method="POST",route="/ask",code="200"} 7
model_api_http_requests_total{method="GET",route="/metrics",code="200"} 100
model_api_http_requests_total{method="GET",route="/health/history",code="200"} 100
model_api_http_requests_total{method="GET",route="/console/",code="200"} 100
model_api_jobs_total{operation="ask",outcome="ok"} 4
model_api_jobs_total{operation="chat",outcome="timeout"} 2
model_api_jobs_total{operation="chat",outcome="cancelled"} 1
model_api_rejected_total{reason="queue_full"} 3
model_api_rate_limited_total 2
model_api_tokens_total{direction="input"} 1000
model_api_tokens_total{direction="output"} 1.5e3
model_api_time_to_first_delta_seconds_bucket{le="0.1",operation="ask"} 4
model_api_time_to_first_delta_seconds_sum{operation="ask"} 0.5
model_api_time_to_first_delta_seconds_count{operation="ask"} 4
`;

const totals = {
  requests: 7,
  jobs: 7,
  failed: 2,
  cancelled: 1,
  refused: 5,
  tokensOut: 1500,
  firsts: 4,
  firstSeconds: 0.5,
};

describe('the totals of a scrape', () => {
  it('are sums over labels, without requests that only monitor the service', () => {
    expect(parseTotals(metrics)).toEqual(totals);
  });

  it('are zero for an empty scrape', () => {
    expect(Object.values(parseTotals('')).every((total) => total === 0)).toBe(true);
  });

  it('yield what was counted between two scrapes', () => {
    const later = { ...totals, requests: 12, tokensOut: 1600 };
    expect(totalsChange(totals, later, 2)).toMatchObject({ seconds: 2, requests: 5, tokensOut: 100, jobs: 0 });
    expect(totalsChange(null, later, 2)).toMatchObject({ requests: 12 });
  });
});

describe('The last hour of a service', () => {
  const minute = { at: '', requests: 2, errors: 1, jobs: 3, failed_jobs: 1, refused: 4, job_ms: null };

  it('is the sum of its minutes, also where an older service counts no refusals', () => {
    expect(hourTotals([minute, minute])).toEqual({ requests: 4, jobs: 6, failed: 2, refused: 8 });
    const { refused: _, ...older } = minute;
    expect(hourTotals([older as typeof minute])).toMatchObject({ jobs: 3, refused: 0 });
  });
});
