# A service for CPUs, with the models' weights inside: see docs/install.md. The corpus is mounted at /data.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
WORKDIR /src
RUN python -m venv /opt/quoth
ENV PATH=/opt/quoth/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock ./
RUN pip install --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY adapters adapters
COPY samples samples
RUN pip install --no-deps --no-build-isolation . && pip check

FROM python:${PYTHON}-slim
RUN useradd --create-home quoth
COPY --from=build /opt/quoth /opt/quoth
ENV PATH=/opt/quoth/bin:$PATH PYTHONUNBUFFERED=1
USER quoth
WORKDIR /home/quoth
EXPOSE 8000
ENTRYPOINT ["quoth", "serve"]
# All addresses of the container; publish the port on 127.0.0.1, or set QUOTH_TOKEN.
CMD ["/data", "--host", "0.0.0.0"]
