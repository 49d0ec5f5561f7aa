"""Authlib as a stranger uses it: one line of settings in, the authorization URL out, the answer's URL in, a report out."""
import json
import sys

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebToken
from authlib.oidc.core import CodeIDToken

settings = json.loads(sys.stdin.readline())
base = settings['base_url']
server = requests.get(f'{base}/.well-known/openid-configuration').json()
stored = []


def keep(token, refresh_token=None, access_token=None):
    stored.append(token['access_token'])


session = OAuth2Session(
    settings['client_id'],
    settings['client_secret'],
    redirect_uri=settings['redirect_uri'],
    scope='openid all_user profile email',
    code_challenge_method='S256',
    token_endpoint_auth_method=settings['method'],
    revocation_endpoint_auth_method=settings['method'],
    token_endpoint=server['token_endpoint'],
    update_token=keep,
)
verifier, nonce = settings['code_verifier'], 'n-0S6_WzA2Mj'
url, state = session.create_authorization_url(server['authorization_endpoint'], code_verifier=verifier, nonce=nonce)
print(url, flush=True)

answer = sys.stdin.readline().strip()
token = session.fetch_token(authorization_response=answer, state=state, code_verifier=verifier)
claims = JsonWebToken(['RS256']).decode(
    token['id_token'],
    requests.get(server['jwks_uri']).json(),
    claims_cls=CodeIDToken,
    claims_options={'iss': {'essential': True, 'value': server['issuer']}},
    claims_params={'client_id': settings['client_id'], 'nonce': nonce, 'access_token': token['access_token']},
)
claims.validate()


def read_login():
    answer = session.get(f'{base}/api/v5/user')
    answer.raise_for_status()
    return answer.json()['login']


report = {'logins': [read_login()], 'access_tokens': [token['access_token']], 'sub': claims['sub']}
session.refresh_token(server['token_endpoint'])
report['logins'].append(read_login())
report['access_tokens'].append(session.token['access_token'])
session.token['expires_at'] = 1
report['logins'].append(read_login())
report['access_tokens'].append(session.token['access_token'])
report['userinfo_sub'] = session.get(server['userinfo_endpoint']).json()['sub']
report['stored'] = stored
introspected = session.introspect_token(server['introspection_endpoint'], token=session.token['access_token'])
report['active'] = introspected.json().get('active')
report['revoked'] = session.revoke_token(server['revocation_endpoint'], token=session.token['refresh_token']).status_code
report['after_revocation'] = session.get(f'{base}/api/v5/user').status_code
print(json.dumps(report))
