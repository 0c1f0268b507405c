import { Redirect } from 'wouter';

/** The policies of keypairs are the first of three. */
export function ToPolicies(): JSX.Element {
  return <Redirect to="/admin/policies/keypair" replace />;
}
