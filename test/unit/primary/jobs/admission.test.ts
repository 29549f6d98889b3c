import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { Admission, type AdmissionResources } from '../../../../src/primary/jobs/admission.js';
import { RetryAdvice } from '../../../../src/primary/jobs/retry-advice.js';
import { invalid, RelayError } from '../../../../src/shared/errors.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

describe('The check of the models of a request', () => {
  const router = {
    checkModel: () => {},
    checkAccount: () => {
      throw new RelayError('forbidden', 'no account');
    },
  };
  const admissionWith = (checkModels: () => void) => {
    const features = new FeatureHooks([{ handlers: {}, job: { checkModels } }]);
    return new Admission({ router, features } as unknown as AdmissionResources, new RetryAdvice(1));
  };

  it('reports a wrong name of a further model before a missing account', () => {
    const admission = admissionWith(() => {
      throw invalid('model', 'must be one of opus');
    });
    expect(() => admission.checkModel(jobRequest())).toThrow('model: must be one of opus');
  });

  it('refuses a client without an account', () => {
    expect(() => admissionWith(() => {}).checkModel(jobRequest())).toThrow('no account');
  });
});
