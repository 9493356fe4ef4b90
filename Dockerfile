# A server for models: docker build -t umpteen . && docker run -p 8000:8000 -v ./models:/models umpteen
# The folder /models holds models that `umpteen fit` made; corrections and versions go to /state.
FROM python:3.13-slim

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    NUMBA_CACHE_DIR=/var/cache/umpteen

WORKDIR /opt/umpteen
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt '.[serve]' \
    && useradd --create-home --uid 10001 umpteen \
    && mkdir -p /models /state /var/cache/umpteen \
    && chown 10001 /state /var/cache/umpteen

USER 10001
VOLUME ["/models", "/state"]
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=5)"]

ENTRYPOINT ["umpteen", "serve", "--host", "0.0.0.0", "--state", "/state"]
CMD ["/models/model"]
