import { type SdkFace, sdkLab } from '../../support/clients/sdk-lab.js';
import { describeAnswers } from './answers.js';
import { describeClaude } from './claude.js';
import { describeFailures } from './failures.js';
import { describeLoops } from './loops.js';
import { describeRetries } from './retries.js';
import { describeThoughts } from './thoughts.js';

const classes: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  413: 'ContentTooLargeError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  503: 'ServiceUnavailableError',
  504: 'GatewayTimeoutError',
  529: 'OverloadedError',
};

const messages: SdkFace = {
  name: 'messages',
  dialect: 'anthropic',
  path: '/v1/messages',
  endings: { whole: 'end_turn', tool: 'tool_use' },
  structured: ['parse', 'parseStream'],
  objects: [],
  has: ['models', 'countTokens'],
  classOf: (status) => classes[status] ?? 'none',
};

const lab = sdkLab('anthropic');

describe('messages of @anthropic-ai/sdk', () => {
  describeAnswers(lab, messages);
  describeClaude(lab, messages);
  describeFailures(lab, messages);
  describeRetries(lab, messages);
  describeThoughts(lab, messages);
  describeLoops(lab, messages.name);
});
