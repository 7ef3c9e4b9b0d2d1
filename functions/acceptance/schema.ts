/**
 * Every key that `npm run evidence -- acceptance` uses in a deployed lease table starts with this; no other part of the
 * app uses it.
 */
export const acceptanceKeyPrefix = "leasehold-acceptance/";

/** The lock of the job that acceptance triggers. */
export const acceptanceJobKey: string = `${acceptanceKeyPrefix}job`;

/** The lock of the workflow that acceptance starts. */
export const acceptanceWorkflowKey: string = `${acceptanceKeyPrefix}workflow`;
