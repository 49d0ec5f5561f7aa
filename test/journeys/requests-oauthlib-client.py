"""requests-oauthlib as a stranger uses it: one line of settings in, the authorization URL out, the answer's URL in, a report out."""
import json
import os
import sys

os.environ['OAUTHLIB_INSECURE_TRANSPORT'] = '1'  # The program of the test speaks http on loopback.
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

settings = json.loads(sys.stdin.readline())
base, secret = settings['base_url'], settings.get('client_secret')
stored = []
session = OAuth2Session(
    settings['client_id'],
    redirect_uri=settings['redirect_uri'],
    scope=['all_user', 'all_hook'],
    auto_refresh_url=f'{base}/oauth/token',
    token_updater=lambda token: stored.append(token['access_token']),
)
challenge = settings.get('code_challenge')
pkce = {} if not challenge else {'code_challenge': challenge, 'code_challenge_method': 'S256'}
url, _ = session.authorization_url(f'{base}/oauth/authorize', **pkce)
print(url, flush=True)

answer = sys.stdin.readline().strip()
verifier = {} if not challenge else {'code_verifier': settings['code_verifier']}
# Without a secret the library authenticates all the same: Basic, with an empty password.
token = session.fetch_token(f'{base}/oauth/token', authorization_response=answer, client_secret=secret, **verifier)


def read_login():
    answer = session.get(f'{base}/api/v5/user')
    answer.raise_for_status()
    return answer.json()['login']


report = {'logins': [read_login()], 'access_tokens': [token['access_token']], 'scope': token['scope']}
renewed = session.refresh_token(f'{base}/oauth/token', auth=HTTPBasicAuth(settings['client_id'], secret or ''))
report['logins'].append(read_login())
report['access_tokens'].append(renewed['access_token'])
# It renews by itself what has expired, and names no client when it does so.
session.token = {**renewed, 'expires_at': 1}
report['logins'].append(read_login())
report['access_tokens'].append(session.token['access_token'])
report['stored'] = stored
print(json.dumps(report))
